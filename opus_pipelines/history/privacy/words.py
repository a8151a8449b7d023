"""Words after which a number is a telephone number, or one of an account, a card or a person, in some fifteen languages.

Words of scripts without blanks between words (Chinese, Japanese) and Arabic words with their article stand apart, because
a letter may come before them.
"""

_PHONES = (
    r"tele(?:ph|f)one?s?|telefon(?:u|nr|nummer|numara(?:s[ıi])?)?|telefoon(?:nummer)?|tel[eé]fono|t[eé]l[eé]phone|telem[oó]vel"
    r"|t[eé]l|telf|tfno|tlf|phone|mobiles?|mobiel|mobil(?:nummer|e)?|m[oó]vil|cell(?:phone|ulare)?|celular|cep|gsm|handy"
    r"|rufnummer|r[uü]ckruf|fax|faks|call|ring|bel|anrufen unter|chiamare|ligar|ligue|fone|kom[oó]rk[ai]|kom|zadzwo[nń]"
    r"|whatsapp|sms|msisdn|телефон[ау]?|тел|моб(?:ильный)?|звон(?:ить|ите)|факс"
)
_PHONES_INSIDE = r"电话|電話|手机|手機|座机|热线|联系方式|致电|携帯|전화|휴대폰|هاتف|جوال|موبايل|تلفون|الاتصال"
_ACCOUNTS = (
    r"accounts?|acct|rekening|konto|kont[ao]|rachun(?:ek|ku)|cuenta|compte|conto(?: corrente)?|conta(?: corrente)?|hesap"
    r"|iban|routing|aba|sort code|(?:credit|debit)[ _-]?card|card(?=[ _-]?(?:number|nr|no)(?![^\W_]))|kreditkarte"
    r"|kart[aey](?= (?:nr|no|numer|numaras))|sch[eè]que|сч[её]т[ау]?|карт[аыу]"
)
_IDENTITIES = (
    r"ssn|social[ _-]security|nhs|national insurance|nino|driv(?:er'?s|ing)[ _-]licen[cs]e|identity card|id card"
    r"|bsn|burgerservicenummer|sofi(?:nummer)?|dni|nie|nif|n\.i\.f\.|passports?|paspoort(?:nummer)?|reisepass(?:nummer)?"
    r"|pasaporte|passeport|passaporto|passaporte|paszport(?:u)?|pasaport|personalausweis(?:nummer)?|ausweis(?:nummer)?"
    r"|steuer-?(?:id|nummer|identifikationsnummer)|idnr|sozialversicherungsnummer|s[eé]curit[eé] sociale|nir|carte d'identit[eé]"
    r"|codice fiscale|carta d'identit[aà]|partita iva|cpf|cnpj|rg|pesel|nip|dow[oó]d(?: osobisty|u)?|t\.?c\.? kimlik|tckn"
    r"|kimlik|vergi|паспорт[ау]?|инн|снилс|удостоверение"
)
_IDENTITIES_INSIDE = r"身份证|護照|护照|账号|帳號|账户|卡号|银行卡|社保号|マイナンバー|여권|계좌|جواز (?:ال)?سفر|الجواز|هوية|الهوية|حساب|بطاقة"
_NUMBER_WORDS = (
    r"(?:[ _-]{0,2}(?:number|nummer|num|n[uú]m(?:[eé]ro)?|numer|numara(?:s[ıi])?|nr|no|n[°º]|n(?=\.)|номер|号码|号碼|号|碼|رقم"
    r"|kom(?:[oó]rkowy)?|серия|osobistego|personne|do|di|de)){0,3}"
)
_LINK_WORDS = r"""["']?[ .:=#)]{0,3}(?:\b(?:is|was|ist|war|est|es|[eè]|jest|to|on|at|op|unter|al|au|pod|sotto|no|на|是|为|為|هو|على)\b)?[ :=#]{0,2}["']?"""

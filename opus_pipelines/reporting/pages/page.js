"use strict";
// A click on a column's head sorts its table: numbers by their value, words as people do. What is unknown goes last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending" || (head.getAttribute("aria-sort") === "none" && head.classList.contains("n"));
    const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      if ((a === "") !== (b === "")) return a === "" ? 1 : -1;
      const order = head.classList.contains("n") ? Number(a) - Number(b) : a.localeCompare(b, "en", {numeric: true});
      return down ? -order : order;
    };
    for (const body of table.tBodies) body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
    heads.forEach((other) => other.setAttribute("aria-sort", other === head ? (down ? "descending" : "ascending") : "none"));
  }));
}
const shut = [];
addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((d) => { shut.push(d); d.open = true; }));
addEventListener("afterprint", () => shut.splice(0).forEach((d) => { d.open = false; }));

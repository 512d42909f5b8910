"use strict";
const at = (id) => document.getElementById(id);
const data = JSON.parse(at("data").textContent);
const number = new Intl.NumberFormat("en");
const count = (amount, one, several) => `${number.format(amount)} ${amount === 1 ? one : several}`;

/** Make an element; texts among its children stay texts. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

// Lists what /openapi.json describes.

import { el } from './dom.js';

const described = await (await fetch('/openapi.json')).json();
const find = (ref) =>
  ref
    .split('/')
    .slice(1)
    .reduce((part, name) => part[name], described);

function fields({ requestBody, parameters = [] }) {
  const form = Object.values(requestBody?.content ?? {})[0]?.schema;
  const { properties = {}, required = [] } = form ? find(form.$ref) : {};
  const inForm = Object.entries(properties).map(([name, of]) => [
    name,
    required.includes(name) ? 'form' : 'form, optional',
    of.description ?? '',
  ]);
  return [...parameters.map((of) => [of.name, `in the ${of.in}`, of.description ?? '']), ...inForm];
}

const row = (cells) => el('tr', {}, ...cells.map((cell) => el('td', {}, cell)));

for (const [path, methods] of Object.entries(described.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const answers = Object.entries(operation.responses).map(([status, of]) => [status, '', of.description]);
    document
      .getElementById('operations')
      .append(
        el('h3', {}, `${method.toUpperCase()} ${path}`),
        el('p', {}, operation.description ?? ''),
        el('table', {}, el('tbody', {}, ...[...fields(operation), ...answers].map(row))),
      );
  }
}

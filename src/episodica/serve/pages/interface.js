// Lists what /openapi.json describes.

import { el } from './dom.js';

const described = await (await fetch('/openapi.json')).json();
const found = (schema) =>
  schema.$ref
    ? schema.$ref
        .split('/')
        .slice(1)
        .reduce((part, name) => part[name], described)
    : schema;
const KINDS = { 'multipart/form-data': 'form', 'application/json': 'JSON' };

function fields({ requestBody, parameters = [] }) {
  const asked = parameters.map((of) => [of.name, `in the ${of.in}`, of.description ?? '']);
  for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
    const { properties, required = [], description = '' } = found(schema);
    const kind = KINDS[type] ?? type;
    if (!properties) asked.push(['body', kind, description]);
    for (const [name, of] of Object.entries(properties ?? {})) {
      asked.push([name, required.includes(name) ? kind : `${kind}, optional`, of.description ?? '']);
    }
  }
  return asked;
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

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { CE_ROUTES } from '../src/index.ts'
import { IGNORED_PARAMETERS } from '../src/routes/route.ts'

const file = join(import.meta.dirname, '../../../docs/reference/cloudevents.md')
const MARKS = /(<!-- routes: made of the schemas -->\n).*(<!-- end -->)/s

/** Without what a formatter does to a table. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/ *\| */g, '|')
    .replaceAll(/-{3,}/g, '---')
    .replaceAll(/\n{2,}/g, '\n')
    .trim()
}

test('CE-7 - docs: the page lists every parameter as the schemas have it (UPDATE_DOCS=1 writes it)', () => {
  if (process.env['UPDATE_DOCS'] === '1') {
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(MARKS, (_, begin, end) => `${begin}\n${routeDocs()}\n${end}`),
    )
  }
  const page = readFileSync(file, 'utf8')
  expect(plain(MARKS.exec(page)?.[0] ?? '')).toBe(
    plain(`<!-- routes: made of the schemas -->\n${routeDocs()}\n<!-- end -->`),
  )
})

/** The page says of these in one sentence. */
const IGNORED: ReadonlySet<unknown> = new Set(Object.values(IGNORED_PARAMETERS))

/** The section on routes of docs/reference/cloudevents.md, made of the schemas that check the queries. */
export function routeDocs(): string {
  return CE_ROUTES.map(({ name, method, summary, input: query }) => {
    const required: readonly string[] = query.required ?? []
    const own = Object.entries(query.properties).filter(([, schema]) => !IGNORED.has(schema))
    const rows = own.map(([parameter, schema]) => {
      const word = (key: string): unknown => Reflect.get(schema, key)
      const kind = required.includes(parameter) ? 'required' : (JSON.stringify(word('default')) ?? '')
      return `| \`${parameter}\` | ${allowed(word)} | ${kind} | ${String(word('description'))} |`
    })
    const table = ['| parameter | allowed | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
    return `### ${method} /ce/${name}\n\n${summary}\n\n${table}\n`
  }).join('\n')
}

function allowed(word: (key: string) => unknown): string {
  const number = (key: string): string => Number(word(key)).toLocaleString('en-US')
  switch (word('type')) {
    case 'boolean':
      return '`true`, `false`'
    case 'array':
      return `${number('minItems')} to ${number('maxItems')} times`
    case 'integer':
      return word('maximum') === Number.MAX_SAFE_INTEGER
        ? `${number('minimum')} or more`
        : `${number('minimum')} to ${number('maximum')}`
    default:
      return word('maxLength') === undefined ? 'text' : `1 to ${number('maxLength')} characters`
  }
}

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { routeDocs } from './route-docs.ts'

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

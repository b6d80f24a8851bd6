import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

import { managementTypes } from '../scripts/api-types.ts'

/** Formatting differs, and so do line breaks within unions. */
function plain(text: string): string {
  return text.replaceAll(/[\s;|]+/g, ' ').replaceAll('"', "'")
}

test('console - the types of the API are those of the OpenAPI document', async () => {
  const file = new URL('../src/page/api/management.d.ts', import.meta.url)
  const isCurrent = plain(readFileSync(file, 'utf8')) === plain(await managementTypes())
  expect(isCurrent, 'run `npm run api-types -w @signalbox/console`').toBe(true)
}, 120_000)

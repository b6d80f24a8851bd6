import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

test.each(['words.txt', 'test-data.txt'])('spelling - %s is sorted, in lower case, one word on a line', (name) => {
  const words = readFileSync(join(import.meta.dirname, '../spelling', name), 'utf8')
    .trimEnd()
    .split('\n')
  expect(words).toEqual([...new Set(words.map((word) => word.toLowerCase()))].toSorted())
})

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { section } from '../scripts/pages/markdown.ts'
import { GENERATED_SECTIONS } from '../scripts/pages/sections.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))

test.each(GENERATED_SECTIONS)(
  'docs - $page has the $name that the code has (npm run docs -w signalbox)',
  async ({ page, name, generate }) => {
    expect(section(readFileSync(`${root}${page}`, 'utf8'), name)).toBe(await generate())
  },
)

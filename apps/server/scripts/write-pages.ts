import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { configurationPage } from '../src/config/document.ts'
import { withSection } from './pages/markdown.ts'
import { GENERATED_SECTIONS } from './pages/sections.ts'

/** Writes what the code knows into `docs/reference/`; tests fail while a page is out of date. */
const root = fileURLToPath(new URL('../../../', import.meta.url))

writeFileSync(`${root}docs/reference/configuration.md`, configurationPage())
for (const { page, name, generate } of GENERATED_SECTIONS) {
  const file = `${root}${page}`
  writeFileSync(file, withSection(readFileSync(file, 'utf8'), name, await generate()))
}

import { writeFileSync } from 'node:fs'

import { configurationPage } from '../src/config/document.ts'

/** Writes `docs/reference/configuration.md` from the schema; a test says when it is out of date. */
writeFileSync(new URL('../../../docs/reference/configuration.md', import.meta.url), configurationPage())

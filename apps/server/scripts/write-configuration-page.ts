import { writeFileSync } from 'node:fs'

import { configurationPage } from '../src/config/document.ts'

/** Writes `docs/configuration.md` from the schema; a test says when it is out of date. */
writeFileSync(new URL('../../../docs/configuration.md', import.meta.url), configurationPage())

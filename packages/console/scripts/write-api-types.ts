// Writes the types of the management API's answers from its OpenAPI document: src/page/api/management.d.ts.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { managementTypes } from './api-types.ts'

writeFileSync(fileURLToPath(new URL('../src/page/api/management.d.ts', import.meta.url)), await managementTypes())

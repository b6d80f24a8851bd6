import { CE_ERRORS } from '@signalbox/connector-cloudevents'
import { MANAGEMENT_ERRORS } from '@signalbox/management-api'
import { REGISTRY_ERRORS } from '@signalbox/registry'

import { managementAccess } from './access.ts'
import { errorTable } from './errors.ts'
import { metricsTable } from './metrics.ts'
import { toolsReference } from './tools.ts'

/** A part of a page that the code writes. */
export interface GeneratedSection {
  readonly page: string
  readonly name: string
  readonly generate: () => string | Promise<string>
}

export const GENERATED_SECTIONS: readonly GeneratedSection[] = [
  { page: 'docs/reference/tools.md', name: 'tools', generate: toolsReference },
  { page: 'docs/reference/http.md', name: 'access by route', generate: managementAccess },
  { page: 'docs/reference/metrics.md', name: 'metrics', generate: metricsTable },
  { page: 'docs/reference/errors.md', name: 'CloudEvents errors', generate: () => errorTable(CE_ERRORS) },
  { page: 'docs/reference/errors.md', name: 'registry errors', generate: () => errorTable(REGISTRY_ERRORS) },
  { page: 'docs/reference/errors.md', name: 'management errors', generate: () => errorTable(MANAGEMENT_ERRORS) },
]

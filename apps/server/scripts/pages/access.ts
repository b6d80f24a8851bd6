import { MANAGEMENT_ROUTES } from '@signalbox/management-api'
import type { DocumentedRoute } from '@signalbox/management-api'

import { table } from './markdown.ts'

const HEADER = ['listener', 'route', 'no token', 'bad token', 'ReadOnly', 'ReadWrite', 'Admin', 'owner']

const EVERYBODY = ['yes', 'yes', 'yes', 'yes', 'yes', 'yes']

/** The answers by the role that a route requires. The owner of an agent has no role. */
const BY_ROLE: Readonly<Record<NonNullable<DocumentedRoute['role']>, readonly string[]>> = {
  ReadOnly: ['401', '401', 'yes', 'yes', 'yes', '403'],
  ReadWrite: ['401', '401', '403', 'yes', 'yes', '403'],
  Admin: ['401', '401', '403', '403', 'yes', '403'],
}

/** The callers that each route of the management listener admits. */
export function managementAccess(): string {
  const rows = MANAGEMENT_ROUTES.filter(({ listener }) => listener === 'management').map(({ method, path, role }) =>
    row(`${method} ${path}`, role === undefined ? EVERYBODY : BY_ROLE[role]),
  )
  const pages = [
    row('GET /console/', EVERYBODY),
    row(
      'GET /unknown',
      EVERYBODY.map(() => '404'),
    ),
  ]
  return table(HEADER, [...rows, ...pages])
}

function row(route: string, answers: readonly string[]): readonly string[] {
  return ['management', `\`${route}\``, ...answers]
}

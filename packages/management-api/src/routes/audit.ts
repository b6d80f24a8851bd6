import { argument, parseTimestamp } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { auditEntrySchema, outcomeSchema } from '../audit/audit-entry.ts'
import { readAudit } from '../audit/audit-query.ts'
import { nextCursor, pageLimit, pagingParameters } from '../paging.ts'
import { defineManagementRoute, STRICT } from './route.ts'

const name = (description: string) => Type.Optional(Type.String({ description, minLength: 1, maxLength: 512 }))

export const auditRoute = defineManagementRoute({
  path: '/api/audit',
  summary: 'The audit log: caller, action, channel or agent, and outcome; newest first.',
  query: Type.Object(
    {
      client: name('Only actions of this client.'),
      action: name('Only this action, such as purge_queue or authentication_failed.'),
      channel: name(
        'Only actions on matching channels or agents: a glob if it contains `*` or `?`, otherwise a prefix.',
      ),
      outcome: Type.Optional(outcomeSchema),
      from: Type.Optional(argument.timestamp('Only events at or after this time, ISO 8601.')),
      to: Type.Optional(argument.timestamp('Only events at or before this time, ISO 8601.')),
      ...pagingParameters,
    },
    STRICT,
  ),
  data: Type.Object({ items: Type.Array(auditEntrySchema), next_cursor: nextCursor }),
  run({ from, to, ...query }, { services }) {
    const filter = { ...query, from: milliseconds(from), to: milliseconds(to) }
    return readAudit(services.system, filter, { limit: pageLimit(query), cursor: query.cursor })
  },
})

function milliseconds(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : parseTimestamp(timestamp)
}

import { argument, parseTimestamp } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { auditEntrySchema, outcomeSchema } from '../audit/audit-entry.ts'
import { readAudit } from '../audit/audit-query.ts'
import { nextCursor, pageLimit, pagingParameters } from '../paging.ts'
import { defineManagementRoute, STRICT } from './route.ts'

const name = (description: string) => Type.Optional(Type.String({ description, minLength: 1, maxLength: 512 }))

export const auditRoute = defineManagementRoute({
  paths: ['/api/audit'],
  summary: 'Who did what to which channel or agent, and how it ended; newest first.',
  query: Type.Object(
    {
      client: name('Only what this client did.'),
      action: name('Only this action, such as purge_queue or authentication_failed.'),
      channel: name('Only what was done to channels or agents that fit: with `*` or `?` a glob, otherwise a prefix.'),
      outcome: Type.Optional(outcomeSchema),
      from: Type.Optional(argument.timestamp('From this time on, inclusive, ISO 8601.')),
      to: Type.Optional(argument.timestamp('Up to this time, inclusive, ISO 8601.')),
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

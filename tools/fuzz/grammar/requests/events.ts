import * as fc from 'fast-check'

import { EVENT_METHODS, eventParams, subscriptionText } from '../events.ts'
import { JSON_UNITS, objectText, oneOfTexts } from '../json.ts'
import { jsonRpc } from '../messages.ts'
import { almost } from '../pieces.ts'
import type { Shape } from './step.ts'
import { JSON_BODY, JSON_TYPE, step } from './step.ts'

const meta = objectText({
  'io.modelcontextprotocol/protocolVersion': oneOfTexts('"2026-07-28"'),
  'io.modelcontextprotocol/clientCapabilities': oneOfTexts(
    '{}',
    '{"extensions":{"io.modelcontextprotocol/events":{}}}',
    '{"events":1}',
  ),
})

/** Requests about events of `/mcp`, and about webhooks of `/ce`. */
const events = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(...EVENT_METHODS).chain((method) =>
      fc
        .tuple(
          almost(jsonRpc(oneOfTexts(JSON.stringify(method)), eventParams(meta)), ...JSON_UNITS),
          fc.constantFrom('plain', 'stalled'),
        )
        .map(([body, manner]): Shape => ({
          method: 'POST',
          path: '/mcp',
          headers: [...JSON_BODY, ['MCP-Protocol-Version', '2026-07-28'], ['Mcp-Method', method]],
          body,
          patienceMs: 60,
          manner: method === 'events/stream' ? manner : 'plain',
        })),
    ),
  },
  {
    weight: 2,
    arbitrary: almost(subscriptionText, ...JSON_UNITS).map((body): Shape => ({
      method: 'POST',
      path: '/ce/subscriptions',
      headers: [JSON_TYPE],
      body,
    })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('GET', 'DELETE', 'POST', 'PUT'),
        fc.constantFrom('', '/none', '/none/secret', '/secret', '/none/', '?x=1', '/..', '/%00'),
      )
      .map(([method, path]): Shape => ({ method, path: `/ce/subscriptions${path}`, headers: [JSON_TYPE] })),
  },
)

export const eventsStep = step(events)

import { AGENT_TOOLS, CORE_TOOLS } from '@signalbox/testkit/mcp-tools'
import * as fc from 'fast-check'

import type { HttpStep } from '../../server/session.ts'
import { JSON_UNITS, jsonText, objectText, oneOfTexts, quoted } from '../json.ts'
import { argumentsText, EVENT_METHODS, eventParams, jsonRpc, subscriptionText } from '../messages.ts'
import { almost, weighted, word } from '../pieces.ts'
import type { Shape } from './step.ts'
import { headerValue, JSON_BODY, JSON_TYPE, post, step } from './step.ts'

/** The arguments of each tool that leads to no agent, by its name. */
export const TOOLS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  [...CORE_TOOLS, ...AGENT_TOOLS].flatMap(({ name, action, args }) =>
    action === 'call' ? [] : [[name, [...Object.keys(args), ...(name === 'events_store_read' ? ['from_time'] : [])]]],
  ),
)

const toolParams = fc.constantFrom(...Object.entries(TOOLS)).chain(([name, args]) =>
  objectText(
    {
      name: oneOfTexts(JSON.stringify(name)),
      arguments: argumentsText(args),
      _meta: objectText({ progressToken: oneOfTexts('1', '"a"', '-1') }),
    },
    ['name', 'arguments'],
  ),
)

export const mcpBody = weighted(
  [8, jsonRpc(oneOfTexts('"tools/call"'), toolParams)],
  [
    1,
    jsonRpc(
      quoted(
        fc.oneof(
          fc.constantFrom(
            'initialize',
            'tools/list',
            'ping',
            'server/discover',
            'notifications/cancelled',
            'resources/list',
          ),
          word,
        ),
      ),
      jsonText,
    ),
  ],
  [
    1,
    jsonRpc(
      oneOfTexts('"initialize"'),
      objectText({ protocolVersion: oneOfTexts('"2025-11-25"', '"1"'), capabilities: jsonText, clientInfo: jsonText }),
    ),
  ],
)

const WITH_TASKS = '{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}'

const meta = objectText(
  {
    'io.modelcontextprotocol/protocolVersion': oneOfTexts(
      '"2026-07-28"',
      '"2026-07-28"',
      '"2026-07-28"',
      '"2025-11-25"',
      '1',
    ),
    'io.modelcontextprotocol/clientCapabilities': oneOfTexts('{}', WITH_TASKS, WITH_TASKS, '[]'),
    progressToken: oneOfTexts('1', '"a"'),
    traceparent: oneOfTexts('"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"', '"\\r\\n"', '0'),
    baggage: quoted(word),
  },
  ['io.modelcontextprotocol/protocolVersion', 'io.modelcontextprotocol/clientCapabilities'],
)

function statelessHeaders(method: string, name: string): HttpStep['headers'] {
  return [...JSON_BODY, ['MCP-Protocol-Version', '2026-07-28'], ['Mcp-Method', method], ['Mcp-Name', name]]
}

/** A call of revision 2026-07-28, whose headers repeat parts of the body. */
const statelessCall = fc.constantFrom(...Object.entries(TOOLS)).chain(([name, args]) => {
  const params = objectText({ name: oneOfTexts(JSON.stringify(name)), arguments: argumentsText(args), _meta: meta }, [
    'name',
    'arguments',
    '_meta',
  ])
  const encoded = `=?base64?${Buffer.from(name).toString('base64')}?=`
  return fc
    .tuple(
      almost(jsonRpc(oneOfTexts('"tools/call"', '"server/discover"', '"subscriptions/listen"'), params), ...JSON_UNITS),
      fc.constantFrom('tools/call', 'tools/call', 'server/discover', 'subscriptions/listen'),
      fc.oneof({ weight: 8, arbitrary: fc.constantFrom(name, encoded) }, headerValue),
    )
    .map(([body, method, shownName]) => post('/mcp', body, statelessHeaders(method, shownName)))
})

const taskParams = objectText(
  {
    taskId: oneOfTexts('"unknown"', '""', '1'),
    inputResponses: oneOfTexts('{}', '{"question-1":{"action":"accept"}}', '[]'),
    notifications: oneOfTexts('{"taskIds":["unknown"]}', '{"taskIds":1}', '[]'),
    _meta: meta,
  },
  ['taskId', '_meta'],
)

/** A request about a task that does not exist, because no generated call lives as long as its task. */
const taskRequest = fc
  .constantFrom('tasks/get', 'tasks/update', 'tasks/cancel', 'subscriptions/listen')
  .chain((method) =>
    almost(jsonRpc(oneOfTexts(JSON.stringify(method)), taskParams), ...JSON_UNITS).map((body) =>
      post('/mcp', body, statelessHeaders(method, 'unknown')),
    ),
  )

const mcp = weighted(
  [8, almost(mcpBody, ...JSON_UNITS).map((body) => post('/mcp', body, JSON_BODY))],
  [3, statelessCall],
  [1, taskRequest],
  [
    1,
    fc
      .constantFrom('GET', 'DELETE', 'OPTIONS', 'PUT')
      .map((method): Shape => ({ method, path: '/mcp', headers: [['Accept', 'text/event-stream']] })),
  ],
)

export const mcpStep = step(mcp)

const eventsMeta = objectText({
  'io.modelcontextprotocol/protocolVersion': oneOfTexts('"2026-07-28"'),
  'io.modelcontextprotocol/clientCapabilities': oneOfTexts(
    '{}',
    '{"extensions":{"io.modelcontextprotocol/events":{}}}',
    '{"events":1}',
  ),
})

/** Requests about events of `/mcp`, and about webhooks of `/ce`. */
const events = weighted(
  [
    3,
    fc.constantFrom(...EVENT_METHODS).chain((method) =>
      fc
        .tuple(
          almost(jsonRpc(oneOfTexts(JSON.stringify(method)), eventParams(eventsMeta)), ...JSON_UNITS),
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
  ],
  [2, almost(subscriptionText, ...JSON_UNITS).map((body) => post('/ce/subscriptions', body))],
  [
    1,
    fc
      .tuple(
        fc.constantFrom('GET', 'DELETE', 'POST', 'PUT'),
        fc.constantFrom('', '/none', '/none/secret', '/secret', '/none/', '?x=1', '/..', '/%00'),
      )
      .map(([method, path]): Shape => ({ method, path: `/ce/subscriptions${path}`, headers: [JSON_TYPE] })),
  ],
)

export const eventsStep = step(events)

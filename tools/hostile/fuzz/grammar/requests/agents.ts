import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import type { HostileReply } from '../../server/hostile-agent.ts'
import { agentReplyText, eventStreamText } from '../agents.ts'
import { JSON_UNITS, jsonText, objectText, oneOfTexts, quoted } from '../json.ts'
import { cardText, jsonRpc } from '../messages.ts'
import { almost, phrase, weighted, word } from '../pieces.ts'
import type { Shape } from './step.ts'
import { headerValue, JSON_BODY, plain, post, step } from './step.ts'

const agentUrl = weighted(
  [6, fc.constant('{{agent}}')],
  [
    1,
    fc.constantFrom(
      '{{agent}}/path?x',
      'http://127.0.0.1:1',
      'http://[::1]:1/',
      'http://169.254.169.254/',
      '{{http}}/mcp',
      '{{api}}/api/config',
      '{{http}}/a2a/agent-two',
      'https://127.0.0.1:1',
    ),
  ],
)
const agentId = weighted(
  [6, fc.constantFrom('agent-one', 'agent-two')],
  [1, fc.constantFrom('a-3', 'none', '..', '%2e%2e', '__proto__', 'A')],
)

const registry = weighted(
  [3, almost(cardText(agentUrl), ...JSON_UNITS).map((body) => post('/agents/register', body))],
  [
    1,
    fc
      .tuple(
        fc.constantFrom('heartbeat', 'heartbeat', 'heartbeat', 'deregister'),
        almost(objectText({ agent_id: quoted(agentId) }), ...JSON_UNITS),
      )
      .map(([call, body]) => post(`/agents/${call}`, body)),
  ],
  [
    1,
    fc
      .tuple(fc.constantFrom('GET', 'GET', 'GET', 'DELETE', 'HEAD', 'OPTIONS'), fc.oneof(agentId, plain(phrase)))
      .map(([method, id]): Shape => ({ method, path: `/agents/${id}` })),
  ],
  [
    1,
    fc
      .tuple(
        plain(phrase),
        weighted([4, fc.constantFrom('', '&limit=1', '&limit=5')], [1, plain(word).map((text) => `&limit=${text}`)]),
        weighted([4, fc.constantFrom('', '', '&cursor={{cursor}}')], [1, plain(word).map((text) => `&cursor=${text}`)]),
      )
      .map(([tags, limit, cursor]): Shape => ({ method: 'GET', path: `/agents?skill_tags=${tags}${limit}${cursor}` })),
  ],
  [1, agentId.map((id): Shape => ({ method: 'GET', path: `/a2a/${id}/.well-known/agent-card.json` }))],
)

const configuration = objectText({
  blocking: oneOfTexts('true', 'false'),
  timeout: oneOfTexts('1', '1', '0.05', '0.5', '0', '1e400', '"1"'),
})
const a2aParams = objectText({
  message: objectText({ kind: oneOfTexts('"message"'), parts: jsonText, text: oneOfTexts('"{{reply}}"') }),
  reply: oneOfTexts('"{{reply}}"'),
  configuration,
})
const a2aMethod = quoted(weighted([6, fc.constantFrom('message/send', 'message/stream', 'tasks/get')], [1, word]))

const agentSend = objectText({
  name: oneOfTexts('"agent_send"'),
  arguments: objectText(
    {
      agent_id: quoted(agentId),
      message: oneOfTexts('"{{reply}}"'),
      blocking: oneOfTexts('true', 'true', 'false'),
      context_id: quoted(word),
      timeout_seconds: oneOfTexts('1', '2'),
    },
    ['agent_id', 'message'],
  ),
})

const agentQuery = objectText({
  name: oneOfTexts('"agent_query"'),
  arguments: objectText({
    agent_id: quoted(agentId),
    method: a2aMethod,
    params: objectText({ reply: oneOfTexts('"{{reply}}"'), configuration }),
  }),
})

const pauses = fc.array(fc.constantFrom(0, 1, 5, 40), { maxLength: 3, size: 'small' })

/** A reply of a hostile agent, with right or wrong contents in a right or wrong form. */
const hostileReply: Arbitrary<HostileReply> = fc.record({
  status: weighted(
    [6, fc.constant('200 OK')],
    [
      1,
      fc.constantFrom(
        '201 Created',
        '204 No Content',
        '302 Found',
        '400 Bad Request',
        '404 Not Found',
        '500 Internal Server Error',
        '503 Service Unavailable',
        '100 Continue',
        '101 Switching Protocols',
        '999 x',
        '0 x',
        'x',
      ),
    ],
  ),
  headers: weighted(
    [4, fc.constantFrom(['Content-Type: application/json'], ['Content-Type: text/event-stream'])],
    [
      1,
      fc.array(
        fc.oneof(
          fc.constantFrom(
            'Content-Type: text/plain',
            'Content-Encoding: gzip',
            'Content-Encoding: br, gzip',
            'Location: {{http}}',
            'Connection: keep-alive',
            'Transfer-Encoding: chunked',
            'Set-Cookie: a',
            `X: ${'a'.repeat(20_000)}`,
            'bad header',
            ': x',
            'Content-Length: -1',
          ),
          headerValue.map((value) => `X-A: ${value}`),
        ),
        { maxLength: 3 },
      ),
    ],
  ),
  framing: fc.constantFrom('length', 'length', 'chunked', 'close', 'longer', 'shorter', 'broken-chunks', 'none'),
  body: fc.oneof(
    almost(agentReplyText, ...JSON_UNITS),
    almost(eventStreamText, 'data: a\n', '\n', 'data: {"a":1}\n\n', 'event: task.status\n'),
  ),
  pauses,
  end: fc.constantFrom('finish', 'finish', 'finish', 'reset', 'hang'),
})

/** Calls that lead to an agent, and the agent's answers. */
const a2a = fc
  .tuple(
    weighted(
      [
        4,
        fc
          .tuple(agentId, almost(jsonRpc(a2aMethod, a2aParams), ...JSON_UNITS))
          .map(([id, body]) => post(`/a2a/${id}`, body, JSON_BODY)),
      ],
      [
        2,
        fc.tuple(agentId, plain(phrase)).map(([id, message]): Shape => ({
          method: 'GET',
          path: `/a2a/${id}/stream?message={{reply}}${message}`,
          headers: [['Accept', 'text/event-stream']],
        })),
      ],
      [
        3,
        jsonRpc(oneOfTexts('"tools/call"'), fc.oneof(agentSend, agentQuery)).map((text) =>
          post('/mcp', [text], JSON_BODY),
        ),
      ],
    ),
    hostileReply,
    fc.constantFrom(60, 200),
  )
  .map(([shape, reply, patienceMs]): Shape => Object.assign({}, shape, { reply, patienceMs }))

export const registryStep = step(registry)
export const a2aStep = step(a2a)

import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { jsonText, objectText, oneOfTexts, quoted } from './json.ts'
import { phrase, weighted, word } from './pieces.ts'

const states = quoted(
  fc.constantFrom(
    'working',
    'completed',
    'failed',
    'canceled',
    'input-required',
    'TASK_STATE_COMPLETED',
    'TASK_STATE_FAILED',
    'nonsense',
  ),
)
const statusText = objectText({ state: states, message: jsonText })

/** Values that agents put into `result`, in the dialects of A2A 0.3 and 1.0. */
const result: Arbitrary<string> = fc.oneof(
  objectText({
    kind: quoted(fc.constantFrom('status-update', 'artifact-update', 'task', 'message')),
    status: statusText,
    final: oneOfTexts('true', 'false'),
    taskId: quoted(word),
  }),
  objectText({ statusUpdate: objectText({ status: statusText, final: oneOfTexts('true', 'false') }) }),
  objectText({ task: objectText({ status: statusText }) }),
  objectText({ message: jsonText }),
  jsonText,
)

const error = objectText({
  code: oneOfTexts('-32000', '-32601', '1', '"1"', '1.5'),
  message: quoted(phrase),
  data: jsonText,
})

/** A reply of an agent: JSON-RPC, some other JSON, or no JSON. */
export const agentReplyText: Arbitrary<string> = weighted(
  [4, objectText({ jsonrpc: oneOfTexts('"2.0"'), id: jsonText, result })],
  [2, objectText({ jsonrpc: oneOfTexts('"2.0"'), id: jsonText, error })],
  [1, objectText({ jsonrpc: oneOfTexts('"2.0"'), result, error })],
  [1, jsonText],
  [1, phrase],
)

const eventData = fc.oneof(agentReplyText, objectText({ type: quoted(word), payload: jsonText }))

const line = weighted(
  [
    4,
    fc
      .constantFrom('task.status', 'task.artifact', 'task.done', 'task.error', 'message', '')
      .map((name) => `event: ${name}`),
  ],
  [8, eventData.map((text) => `data: ${text}`)],
  [
    1,
    fc.constantFrom(
      ':',
      ': comment',
      'data',
      'data:',
      'id: 1',
      'id: \0',
      'retry: 1',
      'retry: x',
      'nonsense',
      '\ufeffdata: x',
    ),
  ],
  [1, phrase],
)

const lineEnd = fc.constantFrom('\n', '\n', '\n', '\r\n', '\r')

/** An event stream of an agent. */
export const eventStreamText: Arbitrary<string> = fc
  .array(fc.tuple(fc.array(fc.tuple(line, lineEnd), { maxLength: 4 }), lineEnd), { maxLength: 6 })
  .map((blocks) => blocks.map(([lines, end]) => lines.map(([text, after]) => text + after).join('') + end).join(''))

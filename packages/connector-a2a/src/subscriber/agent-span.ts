import { decodeText } from '@signalbox/broker-core'
import type { Span, Tracing } from '@signalbox/broker-core'
import { serverAttributes } from '@signalbox/broker-core/internal'
import { LARGE_BODY_BYTES, memberText } from '@signalbox/http-kit/internal'

import type { AgentQuery } from '../requests/agent-query.ts'

/** Begins the span of a call of an agent, within the span that the headers of the request name. */
export function agentSpan(tracing: Tracing, agentId: string, query: AgentQuery, url: string): Span | undefined {
  const context = tracing.read(query.headers)
  return tracing.begin(
    {
      name: `invoke_agent ${agentId}`,
      kind: 'client',
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': 'a2a',
        'gen_ai.agent.id': agentId,
        'gen_ai.agent.name': agentId,
        'gen_ai.conversation.id': contextIdOf(query.body),
        ...serverAttributes(new URL(url)),
      },
    },
    context && { context, isTrusted: true },
  )
}

/** Returns the contextId of the message in a request; undefined if it has none, or is large. */
function contextIdOf(body: Uint8Array): string | undefined {
  if (body.byteLength > LARGE_BODY_BYTES) return undefined
  let text = decodeText(body)
  for (const name of ['params', 'message', 'contextId']) text = text === undefined ? undefined : memberText(text, name)
  return text?.startsWith('"') === true ? text.slice(1, -1) : undefined
}

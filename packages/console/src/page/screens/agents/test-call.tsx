import { useState } from 'preact/hooks'

import type { PostData } from '../../api/client.ts'
import { act } from '../../api/client.ts'
import { CallState } from '../../components/call-state.tsx'
import { Field } from '../../components/fields.tsx'
import { NeedsRole } from '../../components/needs-role.tsx'
import { Panel } from '../../components/page.tsx'
import { ToolResult } from '../../components/tool-result.tsx'
import { useCall } from '../../components/use-call.ts'

/** The longest time that the management API waits, in seconds. */
const MAX_WAIT_SECONDS = 170

/** Sends a message to the agent, as a caller of `/mcp` does, and shows the reply. */
export function TestCall({ id }: { readonly id: string }) {
  const [message, setMessage] = useState('')
  const call = useCall<PostData<'/api/actions/call_tool'>>()
  const submit = (event: Event): void => {
    event.preventDefault()
    const args = { agent_id: id, message, timeout_seconds: MAX_WAIT_SECONDS }
    call.start((signal) => act('call_tool', { name: 'agent_send', arguments: args }, signal))
  }
  return (
    <Panel title="Test call" note="Sends a message through the gateway, in your name">
      <NeedsRole role="ReadWrite" to="To call an agent">
        <form class="stack form" onSubmit={submit}>
          <Field label="Message">
            <textarea
              class="short"
              rows={3}
              required
              value={message}
              onInput={(event) => setMessage(event.currentTarget.value)}
            />
          </Field>
          <div class="buttons start">
            <button type="submit" class="primary" disabled={call.since !== undefined || message === ''}>
              Send
            </button>
          </div>
        </form>
        <CallState call={call} />
        {call.result && <ToolResult result={call.result} />}
      </NeedsRole>
    </Panel>
  )
}

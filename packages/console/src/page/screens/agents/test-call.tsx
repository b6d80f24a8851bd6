import { useState } from 'preact/hooks'

import type { StreamEvent } from '../../api/events.ts'
import { callAgent } from '../../api/events.ts'
import { CallState, useCall } from '../../components/call.tsx'
import { TextArea } from '../../components/fields.tsx'
import { NeedsRole, Panel } from '../../components/page.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { UserCode } from '../../components/values.tsx'

/** The most events that are shown; the newest ones. */
const MAX_SHOWN = 200

/** The names of the events, in words. */
const NAMES: Readonly<Record<string, string>> = {
  'task.status': 'Status',
  'task.artifact': 'Artifact',
  message: 'Message',
  'task.done': 'Done',
  'task.error': 'Failed',
}

/** Sends a message to the agent through the gateway, and shows its events as they come. */
export function TestCall({ id }: { readonly id: string }) {
  const [message, setMessage] = useState('')
  const [events, setEvents] = useState<readonly StreamEvent[]>([])
  const call = useCall<true>()
  const submit = (event: Event): void => {
    event.preventDefault()
    setEvents([])
    call.start(async (signal) => {
      await callAgent({ agent_id: id, message }, signal, (next) =>
        setEvents((last) => [...last.slice(1 - MAX_SHOWN), next]),
      )
      return true
    })
  }
  return (
    <Panel title="Test call" note="Sends a message through the gateway, in your name">
      <NeedsRole role="ReadWrite" to="To call an agent">
        <form class="stack form" onSubmit={submit}>
          <TextArea label="Message" rows={3} short prose required value={message} onChange={setMessage} />
          <div class="buttons start">
            <button type="submit" class="primary" disabled={call.since !== undefined || message === ''}>
              Send
            </button>
          </div>
        </form>
        <CallState call={call} />
        <div aria-live="polite">{events.length > 0 && <Timeline label="Events" events={events.map(shownEvent)} />}</div>
      </NeedsRole>
    </Panel>
  )
}

function shownEvent({ name, data, time }: StreamEvent) {
  return {
    time,
    title: NAMES[name] ?? name,
    detail: <UserCode max={20_000}>{JSON.stringify(payloadOf(data), undefined, 2)}</UserCode>,
  }
}

/** Returns what the agent sent, without the frame of the gateway. */
function payloadOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'payload' in data ? data.payload : data
}

import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { CallState, useCall } from '../../components/call.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { NumberField } from '../../components/fields.tsx'
import { Empty, Facts, NeedsRole } from '../../components/page.tsx'
import { Badge, ChannelLink, count, Time, UserCode, UserText } from '../../components/values.tsx'
import type { BadgeKind } from '../../components/values.tsx'
import { RotateSecret } from './rotate-secret.tsx'

type Webhook = GetData<'/api/webhooks'>['items'][number]

interface WebhookDialogProps {
  /** Undefined if there is no such subscription. */
  readonly webhook: Webhook | undefined
  readonly onClose: () => void
  readonly onChanged: () => void
}

/** One subscription with its actions. */
export function WebhookDialog({ webhook, onClose, onChanged }: WebhookDialogProps) {
  return (
    <Dialog title="Webhook subscription" wide onClose={onClose}>
      {webhook === undefined ? (
        <Empty>There is no such subscription.</Empty>
      ) : (
        <div class="stack">
          <WebhookFacts webhook={webhook} />
          <NeedsRole role="ReadWrite" to="To pause, test or redeliver">
            <Actions webhook={webhook} onChanged={onChanged} />
          </NeedsRole>
          <NeedsRole role="Admin" to="To rotate the secret">
            <RotateSecret id={webhook.id} />
          </NeedsRole>
        </div>
      )}
    </Dialog>
  )
}

/** The channel of a subscription, or the task of an agent whose push notifications it delivers. */
export function WebhookSource({ type, channel }: Pick<Webhook, 'type' | 'channel'>) {
  return type === 'run' ? <UserText>{channel}</UserText> : <ChannelLink type={type} name={channel} />
}

function WebhookFacts({ webhook }: { readonly webhook: Webhook }) {
  const { id, owner, type, channel, endpoint_host, format, filter, ordered, state, reason, next_sequence } = webhook
  return (
    <Facts
      of={{
        State: (
          <>
            <WebhookState state={state} /> {reason !== undefined && <UserText max={2_000}>{reason}</UserText>}
          </>
        ),
        Id: <code>{id}</code>,
        Endpoint: <UserText>{endpoint_host}</UserText>,
        Channel: <WebhookSource type={type} channel={channel} />,
        Owner: <UserText>{owner}</UserText>,
        Format: `${format}, ${ordered ? 'in order' : 'not in order'}`,
        Filter: filter !== undefined && <UserCode max={4_096}>{filter}</UserCode>,
        'Next sequence': next_sequence !== undefined && count(next_sequence),
        'Dead letters': <ChannelLink type="queues" name={webhook.dead_letter_queue} />,
        Created: <Time value={webhook.created_at} />,
      }}
    />
  )
}

function Actions({ webhook, onChanged }: { readonly webhook: Webhook; readonly onChanged: () => void }) {
  const { id, state, type, next_sequence: next } = webhook
  const [sequence, setSequence] = useState('')
  const call = useCall<string>()
  const stopped = state === 'paused' || state === 'disabled'
  const run = (work: (signal: AbortSignal) => Promise<string>): void =>
    call.start(async (signal) => {
      const text = await work(signal)
      onChanged()
      return text
    })
  const resume = async (signal: AbortSignal): Promise<string> => {
    await act('resume_webhook', { id }, signal)
    return 'The deliveries continue.'
  }
  const pause = async (signal: AbortSignal): Promise<string> => {
    await act('pause_webhook', { id }, signal)
    return 'The deliveries are paused. Messages wait until you resume them.'
  }
  const redeliver = async (signal: AbortSignal): Promise<string> => {
    await act('redeliver_webhook', { id, sequence: Number(sequence) }, signal)
    return `The events from sequence ${count(Number(sequence))} on are delivered again.`
  }
  const busy = call.since !== undefined
  return (
    <>
      <div class="buttons start">
        {stopped ? (
          <button type="button" class="primary" disabled={busy} onClick={() => run(resume)}>
            Resume
          </button>
        ) : (
          <button type="button" disabled={busy} onClick={() => run(pause)}>
            Pause
          </button>
        )}
        <button type="button" disabled={busy} onClick={() => run((signal) => test(id, signal))}>
          Send test message
        </button>
      </div>
      {type === 'events_store' && (
        <form
          class="redeliver"
          onSubmit={(event) => {
            event.preventDefault()
            run(redeliver)
          }}
        >
          <NumberField
            label={
              <>
                Deliver again from sequence{' '}
                {next !== undefined && <span class="muted">(the next is {count(next)})</span>}
              </>
            }
            required
            min={1}
            value={sequence}
            onChange={setSequence}
          />
          <button type="submit" disabled={busy}>
            Redeliver
          </button>
        </form>
      )}
      <CallState call={call} />
      <p role="status">{call.result}</p>
    </>
  )
}

async function test(id: string, signal: AbortSignal): Promise<string> {
  const { status, error } = await act('test_webhook', { id }, signal)
  if (status === undefined) return `The endpoint did not answer: ${error ?? 'unknown reason'}.`
  return `The endpoint answered with status ${status}${status >= 200 && status < 300 ? '.' : ', which is a failure.'}`
}

type State = GetData<'/api/webhooks'>['items'][number]['state']

const STATES: Readonly<Record<State, readonly [BadgeKind, string]>> = {
  active: ['good', 'Active'],
  failing: ['bad', 'Failing'],
  paused: ['warning', 'Paused'],
  disabled: ['bad', 'Disabled'],
}

export function WebhookState({ state }: { readonly state: State }) {
  const [kind, text] = STATES[state]
  return <Badge kind={kind}>{text}</Badge>
}

import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { BodyView } from '../../components/body-view.tsx'
import { CallState, useCall } from '../../components/call.tsx'
import { Confirm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty, Facts, NeedsRole } from '../../components/page.tsx'
import { tagsText } from '../../components/tags.tsx'
import { Badge, ChannelLink, count, span, Time, UserCode, UserText } from '../../components/values.tsx'

export type Schedule = GetData<'/api/schedules'>['items'][number]

interface ScheduleDialogProps {
  /** Undefined if there is no such schedule. */
  readonly schedule: Schedule | undefined
  readonly onClose: () => void
  readonly onChanged: () => void
}

/** One schedule with its actions. */
export function ScheduleDialog({ schedule, onClose, onChanged }: ScheduleDialogProps) {
  return (
    <Dialog title="Schedule" wide onClose={onClose}>
      {schedule === undefined ? (
        <Empty>There is no such schedule.</Empty>
      ) : (
        <div class="stack">
          <ScheduleFacts schedule={schedule} />
          <BodyView body={schedule.message.body} />
          <NeedsRole role="ReadWrite" to="To pause, send now or remove">
            <Actions schedule={schedule} onChanged={onChanged} onRemoved={onClose} />
          </NeedsRole>
        </div>
      )}
    </Dialog>
  )
}

/** Returns the times of a schedule in a few words. */
export function timesText({ cron, every_seconds: every, at, time_zone: zone }: Schedule): string {
  if (cron !== undefined) return `${cron} (${zone})`
  return every === undefined ? `once, ${at ?? ''}` : `every ${span(every * 1_000)}`
}

export function ScheduleState({ schedule: { paused, failure, next_times } }: { readonly schedule: Schedule }) {
  if (paused) return <Badge kind="warning">Paused</Badge>
  if (failure !== undefined) return <Badge kind="bad">Failing</Badge>
  return next_times.length > 0 ? <Badge kind="good">Active</Badge> : <Badge kind="neutral">Over</Badge>
}

function ScheduleFacts({ schedule }: { readonly schedule: Schedule }) {
  const { id, target, message, failure, next_times: next, last_time: last, last_sent_at: sentAt } = schedule
  const { tags } = message
  return (
    <Facts
      of={{
        State: (
          <>
            <ScheduleState schedule={schedule} />{' '}
            {failure !== undefined && <UserText max={2_000}>{failure.reason}</UserText>}
          </>
        ),
        Id: <UserCode>{id}</UserCode>,
        Times: <UserText>{timesText(schedule)}</UserText>,
        Channel: <ChannelLink type={target.type} name={target.channel} />,
        Next: next.length > 0 && (
          <>
            {next.map((time) => (
              <div key={time}>
                <Time value={time} />
              </div>
            ))}
          </>
        ),
        Last: last !== undefined && (
          <>
            <Time value={last} />, sent <Time value={sentAt} />
          </>
        ),
        Missed: count(schedule.missed),
        'Catch-up': span(schedule.catchup_window_seconds * 1_000),
        Tags: Object.keys(tags).length > 0 && <UserCode max={2_000}>{tagsText(tags)}</UserCode>,
        Changed: (
          <>
            <Time value={schedule.changed_at} /> by <UserText>{schedule.changed_by}</UserText>
          </>
        ),
      }}
    />
  )
}

interface ActionsProps {
  readonly schedule: Schedule
  readonly onChanged: () => void
  readonly onRemoved: () => void
}

function Actions({ schedule: { id, paused, revision }, onChanged, onRemoved }: ActionsProps) {
  const [removing, setRemoving] = useState(false)
  const call = useCall<string>()
  const run = (action: 'pause_schedule' | 'resume_schedule' | 'trigger_schedule', text: string): void =>
    call.start(async (signal) => {
      await act(action, { id }, signal)
      onChanged()
      return text
    })
  const busy = call.since !== undefined
  return (
    <>
      <div class="buttons start">
        {paused ? (
          <button
            type="button"
            class="primary"
            disabled={busy}
            onClick={() => run('resume_schedule', 'The schedule continues.')}
          >
            Resume
          </button>
        ) : (
          <button
            type="button"
            disabled={busy}
            onClick={() => run('pause_schedule', 'The schedule is paused. Due times until you resume it are skipped.')}
          >
            Pause
          </button>
        )}
        <button type="button" disabled={busy} onClick={() => run('trigger_schedule', 'The message was sent.')}>
          Send now
        </button>
        <button type="button" class="danger" disabled={busy} onClick={() => setRemoving(true)}>
          Remove
        </button>
      </div>
      <CallState call={call} />
      <p role="status">{call.result}</p>
      {removing && (
        <Confirm
          title="Remove schedule"
          action="Remove"
          run={async () => {
            await act('remove_schedule', { id, revision })
            onChanged()
            onRemoved()
          }}
          onClose={() => setRemoving(false)}
        >
          <p>
            This removes the schedule <UserCode>{id}</UserCode>. Messages that it sent stay in their channel.
          </p>
        </Confirm>
      )}
    </>
  )
}

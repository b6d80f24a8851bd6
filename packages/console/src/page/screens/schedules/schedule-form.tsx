import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import { Segments } from '../../components/controls.tsx'
import { ActionForm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { NumberField, TextArea, TextField } from '../../components/fields.tsx'
import { notify } from '../../components/page.tsx'
import { TagsField, tagsOf } from '../../components/tags.tsx'

const TIMES = [
  ['cron', 'Calendar'],
  ['every_seconds', 'Interval'],
  ['at', 'Once'],
] as const

const TARGETS = [
  ['queues', 'Queue'],
  ['events_store', 'Events store'],
  ['events', 'Events'],
] as const

interface ScheduleFormProps {
  readonly onClose: () => void
  readonly onAdded: () => void
}

/** The form that adds a schedule. */
export function ScheduleForm({ onClose, onAdded }: ScheduleFormProps) {
  const [id, setId] = useState('')
  const [kind, setKind] = useState<(typeof TIMES)[number][0]>('cron')
  const [time, setTime] = useState('')
  const [zone, setZone] = useState(() => Intl.DateTimeFormat().resolvedOptions().timeZone)
  const [type, setType] = useState<(typeof TARGETS)[number][0]>('queues')
  const [channel, setChannel] = useState('')
  const [body, setBody] = useState('')
  const [tags, setTags] = useState('')
  const run = async (): Promise<void> => {
    const times = {
      cron: { cron: time, time_zone: zone === '' ? 'UTC' : zone },
      every_seconds: { every_seconds: Number(time) },
      at: { at: time },
    }
    const message = { body, tags: tagsOf(tags) }
    // Another schedule with this id stays as it is.
    await act('set_schedule', { id, ...times[kind], target: { type, channel }, message, revision: 0 })
    onAdded()
    notify(`Schedule ${id} added.`)
    onClose()
  }
  return (
    <Dialog title="Add schedule" wide onClose={onClose}>
      <ActionForm action="Add" onLeave={onClose} run={run}>
        <TextField label="Id" hint="Letters, digits, and . _ -" required value={id} onChange={setId} />
        <Segments
          label="Times"
          value={kind}
          options={TIMES}
          onChange={(next) => {
            setKind(next)
            setTime('')
          }}
        />
        {kind === 'cron' && (
          <>
            <TextField
              label="Cron expression"
              hint="Minute, hour, day of the month, month, day of the week: 30 9 * * MON-FRI"
              required
              value={time}
              onChange={setTime}
            />
            <TextField label="Time zone" value={zone} onChange={setZone} />
          </>
        )}
        {kind === 'every_seconds' && (
          <NumberField label="Seconds between two messages" required min={10} value={time} onChange={setTime} />
        )}
        {kind === 'at' && (
          <TextField
            label="Time"
            hint="With a time zone: 2027-01-31T09:30+01:00"
            required
            value={time}
            onChange={setTime}
          />
        )}
        <Segments label="Channel type" value={type} options={TARGETS} onChange={setType} />
        <TextField label="Channel" required value={channel} onChange={setChannel} />
        <TextArea label="Body" rows={6} value={body} onChange={setBody} />
        <TagsField value={tags} onChange={setTags} />
      </ActionForm>
    </Dialog>
  )
}

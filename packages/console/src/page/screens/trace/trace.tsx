import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import type { GetData, GetQuery } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { Select } from '../../components/controls.tsx'
import { Field, TextField } from '../../components/fields.tsx'
import { Empty, Page, Panel, Reading } from '../../components/page.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { ChannelLink, isChannelType, Time, TYPE_NAMES, UserCode, UserText } from '../../components/values.tsx'
import { href, setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { Places } from './places.tsx'

type TraceData = GetData<'/api/trace'>

/** What the server knows about one message, by its id or by the id of its trace. */
export function Trace({ place: { query } }: ScreenProps) {
  return (
    <Page title="Trace" note="The way of one message">
      <TraceForm key={JSON.stringify(query)} query={query} />
      <Answer query={query} />
    </Page>
  )
}

/** The types of channels that store messages. */
const STORED = ['queues', 'events_store'] as const

type Query = Readonly<Record<string, string>>

const TRACE_ID = /^[\da-f]{32}$/
/** A traceparent, as it is in tags. */
const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}$/

/** Returns the parameters of the route; undefined if the place names no message. */
function questionOf({ id = '', type, channel = '' }: Query): GetQuery<'/api/trace'> | undefined {
  if (id === '') return undefined
  const trace = TRACEPARENT.exec(id)?.[1] ?? (TRACE_ID.test(id) ? id : undefined)
  const stored = STORED.find((one) => one === type)
  const where = channel === '' || stored === undefined ? {} : { type: stored, channel }
  return trace === undefined ? { id, ...where } : { trace_id: trace, ...where }
}

function TraceForm({ query }: { readonly query: Query }) {
  const [id, setId] = useState(query['id'] ?? '')
  const [channel, setChannel] = useState(query['channel'] ?? '')
  const [type, setType] = useState(STORED.find((one) => one === query['type']) ?? 'queues')
  return (
    <form
      class="tester trace-form"
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ id: id.trim(), channel: channel.trim(), type: channel.trim() === '' ? undefined : type })
      }}
    >
      <Field label="Id of the message, or trace id">
        <input
          type="search"
          required
          maxLength={256}
          autocomplete="off"
          spellcheck={false}
          value={id}
          onInput={(event) => setId(event.currentTarget.value)}
        />
      </Field>
      <Field label="Also search in">
        <Select value={type} options={STORED.map((one) => [one, TYPE_NAMES[one]])} onChange={setType} />
      </Field>
      <TextField label="Channel (optional)" value={channel} onChange={setChannel} />
      <button type="submit" class="primary">
        Trace
      </button>
    </form>
  )
}

function Answer({ query }: { readonly query: Query }) {
  const question = questionOf(query)
  if (question === undefined) {
    return (
      <Empty>
        Enter the id of a message. Its sender got the id in the answer, and lists of messages show it. A trace id has 32
        hexadecimal digits and is in the tag traceparent.
      </Empty>
    )
  }
  return <Found key={JSON.stringify(question)} question={question} />
}

function Found({ question }: { readonly question: GetQuery<'/api/trace'> }) {
  const { data, error, loading } = useRoute('/api/trace', question, 5_000)
  const [announced, setAnnounced] = useState('')
  useEffect(() => {
    if (data) setAnnounced(summaryOf(data))
  }, [data])
  return (
    <>
      <p role="status" class="hidden-text">
        {announced}
      </p>
      <Reading of={{ error, loading }} />
      {data?.trace_id !== undefined && <OtherSystem id={data.trace_id} url={data.trace_url} />}
      {data && <Steps data={data} />}
      {data && data.places.length > 0 && <Places places={data.places} />}
      {data && data.audit.length > 0 && <AuditOfMessage entries={data.audit} />}
    </>
  )
}

/** The trace that the message belongs to, with a link to its page in the operators' tracing system. */
function OtherSystem({ id, url }: { readonly id: string; readonly url: string | undefined }) {
  return (
    <p>
      Trace <UserCode>{id}</UserCode>
      {url !== undefined && (
        <>
          {' '}
          <a href={url} rel="noreferrer" target="_blank">
            Open it in the tracing system
          </a>
        </>
      )}
    </p>
  )
}

function summaryOf({ steps, places }: TraceData): string {
  if (steps.length === 0 && places.length === 0) return 'Nothing is known about the message.'
  return `${steps.length} steps; stored in ${places.length} channels.`
}

function Steps({ data }: { readonly data: TraceData }) {
  const { node, steps, remembered_since: since } = data
  return (
    <Panel
      title="Steps"
      note={
        <>
          Seen by {node}
          {since !== null && (
            <>
              , which has forgotten steps before <Time value={since} />
            </>
          )}
        </>
      }
    >
      {steps.length === 0 ? (
        <Empty>
          This node has seen no step of such a message. It may have passed another node, or too long ago. The audit log
          and the channels are searched too.
        </Empty>
      ) : (
        <Timeline
          label="Steps"
          events={steps.map((step) => ({
            time: step.time,
            title: <StepText step={step} />,
            detail: (
              <>
                {isChannelType(step.type) && <ChannelLink type={step.type} name={step.channel} />}{' '}
                <UserCode>{step.id}</UserCode>
              </>
            ),
          }))}
        />
      )}
    </Panel>
  )
}

type Step = GetData<'/api/trace'>['steps'][number]

/** One step of a message as a sentence without its channel. */
function StepText({ step: { event, party, other } }: { readonly step: Step }) {
  const who = party === '' ? 'an unknown client' : <UserText>{party}</UserText>
  const repeated = other !== undefined && (
    <>
      {' '}
      (<a href={href(['trace'], { id: other })}>the other message</a>)
    </>
  )
  const texts: Readonly<Record<Step['event'], ComponentChildren>> = {
    accepted: <>Accepted from {who}</>,
    delivered: <>Delivered to {who}</>,
    redelivered: <>Delivered again to {who}</>,
    executed: <>Executed by {who}</>,
    rejected: <>Rejected by {who}</>,
    unanswered: <>Not answered: {who}</>,
    redriven: <>Redriven by {who}</>,
  }
  return (
    <>
      {texts[event]}
      {repeated}
    </>
  )
}

type Entry = GetData<'/api/trace'>['audit'][number]

/** The entries of the audit log that name the message, oldest first. */
function AuditOfMessage({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <Panel title="Audit log" note="Entries that name the message">
      <Timeline
        label="Audit log"
        events={entries.toReversed().map(({ time, action, client, channel, detail = '', node }) => ({
          time,
          title: (
            <>
              <code>{action}</code> by <UserText>{client}</UserText>
            </>
          ),
          detail: (
            <>
              {channel !== undefined && <UserText>{`${channel} `}</UserText>}
              <UserText>{detail}</UserText> on {node}
            </>
          ),
        }))}
      />
    </Panel>
  )
}

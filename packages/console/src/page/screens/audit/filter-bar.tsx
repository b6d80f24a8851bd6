import { Search, Select } from '../../components/controls.tsx'
import type { AuditFilters } from './read-audit.tsx'

type Query = Readonly<Record<string, string | undefined>>

const OUTCOMES = [
  ['', 'All outcomes'],
  ['success', 'Success'],
  ['failure', 'Failure'],
  ['denied', 'Denied'],
] as const

type OutcomeFilter = (typeof OUTCOMES)[number][0]

function outcomeOf(text: string | undefined): OutcomeFilter {
  return OUTCOMES.find(([value]) => value === text)?.[0] ?? ''
}

/** Returns the filters of a place. Times are local without a zone. */
export function filtersOf({ client, action, channel, outcome, from, to }: Query): AuditFilters {
  const wanted = outcomeOf(outcome)
  return {
    client,
    action,
    channel,
    outcome: wanted === '' ? undefined : wanted,
    from: timestampOf(from),
    to: timestampOf(to),
  }
}

/** Returns `true` if the filters leave something out. */
export function isFiltered(filters: AuditFilters): boolean {
  return Object.values(filters).some((value) => value !== undefined)
}

function timestampOf(text: string | undefined): string | undefined {
  const date = new Date(text ?? '')
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

const NO_FILTERS: Query = {
  channel: undefined,
  client: undefined,
  action: undefined,
  outcome: undefined,
  from: undefined,
  to: undefined,
}

interface AuditFilterBarProps {
  readonly query: Query
  readonly onChange: (changes: Query) => void
}

export function AuditFilterBar({ query, onChange }: AuditFilterBarProps) {
  return (
    <div class="filters" role="search" aria-label="Filters of the audit log">
      <Search label="Channel or agent" name="channel" />
      <Text name="client" label="Caller" query={query} onChange={onChange} />
      <Text name="action" label="Action" query={query} onChange={onChange} />
      <Select
        label="Outcome"
        value={outcomeOf(query['outcome'])}
        options={OUTCOMES}
        onChange={(outcome) => onChange({ outcome })}
      />
      <TimeField name="from" label="From" query={query} onChange={onChange} />
      <TimeField name="to" label="to" query={query} onChange={onChange} />
      {isFiltered(filtersOf(query)) && (
        <button type="button" class="quiet" onClick={() => onChange(NO_FILTERS)}>
          Clear filters
        </button>
      )}
    </div>
  )
}

interface FilterProps extends AuditFilterBarProps {
  readonly name: string
  readonly label: string
}

function Text({ name, label, query, onChange }: FilterProps) {
  return (
    <input
      class="filter-text"
      aria-label={label}
      placeholder={label}
      autocomplete="off"
      spellcheck={false}
      value={query[name] ?? ''}
      onChange={(event) => onChange({ [name]: event.currentTarget.value })}
    />
  )
}

function TimeField({ name, label, query, onChange }: FilterProps) {
  return (
    <label class="filter-time">
      <span class="muted">{label}</span>{' '}
      <input
        type="datetime-local"
        value={query[name] ?? ''}
        onChange={(event) => onChange({ [name]: event.currentTarget.value })}
      />
    </label>
  )
}

import { useEffect, useRef, useState } from 'preact/hooks'

import { get } from '../../api/client.ts'
import type { GetData, GetQuery } from '../../api/client.ts'
import type { PageOf } from '../../api/further-pages.ts'
import { toApiError } from '../../api/use-data.ts'
import { notify } from '../../components/page.tsx'
import { saveFile } from '../../components/save-and-copy.tsx'
import { count, plural } from '../../components/values.tsx'

export type AuditEntry = GetData<'/api/audit'>['items'][number]

export type AuditFilters = Omit<GetQuery<'/api/audit'>, 'cursor' | 'limit'>

type AuditPage = PageOf<AuditEntry>

/** The requests for one page. With filters, an answer can be empty although older entries match. */
const MAX_REQUESTS = 10

/** Reads until entries match, the log ends, or the server has searched long enough. */
export async function readAuditPage(
  filters: AuditFilters,
  cursor: string | null,
  limit: number,
  signal?: AbortSignal,
): Promise<AuditPage> {
  let next = cursor
  for (let request = 1; ; request++) {
    const page: AuditPage = await get('/api/audit', { ...filters, limit, cursor: next ?? undefined }, signal)
    if (page.items.length > 0 || page.next_cursor === null || request === MAX_REQUESTS) return page
    next = page.next_cursor
  }
}

/** The most entries of an export. */
const MAX_EXPORTED = 100_000

/** Reads the matching entries, newest first, as lines of JSON. */
async function readAuditLines(
  filters: AuditFilters,
  signal: AbortSignal,
  onProgress: (lines: number) => void,
): Promise<readonly string[]> {
  const lines: string[] = []
  let cursor: string | null = null
  do {
    const page: AuditPage = await readAuditPage(filters, cursor, 1_000, signal)
    lines.push(...page.items.map((entry) => `${JSON.stringify(entry)}\n`))
    onProgress(lines.length)
    cursor = page.next_cursor
  } while (cursor !== null && lines.length < MAX_EXPORTED)
  return lines.slice(0, MAX_EXPORTED)
}

/** Saves the entries that match the filters as JSON lines. */
export function Export({ filters }: { readonly filters: AuditFilters }) {
  const [lines, setLines] = useState<number>()
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const save = async (): Promise<void> => {
    const ended = new AbortController()
    running.current = ended
    setLines(0)
    try {
      const read = await readAuditLines(filters, ended.signal, setLines)
      saveFile('audit.jsonl', read)
      const cut = read.length === MAX_EXPORTED ? ' An export has no more: narrow the time for older ones.' : ''
      notify(`${plural(read.length, 'entry', 'entries')} saved.${cut}`)
    } catch (error) {
      if (!ended.signal.aborted) notify(`The export failed. ${toApiError(error).message}`)
    }
    setLines(undefined)
  }
  if (lines === undefined) {
    return (
      <button type="button" onClick={() => void save()}>
        Export JSON lines
      </button>
    )
  }
  return (
    <>
      <span role="status" class="muted">
        {count(lines)} entries read
      </span>
      <button type="button" onClick={() => running.current?.abort()}>
        Cancel
      </button>
    </>
  )
}

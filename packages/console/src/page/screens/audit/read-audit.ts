import type { GetData, GetQuery } from '../../api/client.ts'
import { get } from '../../api/client.ts'

export type AuditEntry = GetData<'/api/audit'>['items'][number]

export type AuditFilters = Omit<GetQuery<'/api/audit'>, 'cursor' | 'limit'>

interface AuditPage {
  readonly items: readonly AuditEntry[]
  readonly next_cursor: string | null
}

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
    const page: AuditPage = await get(
      '/api/audit',
      { ...filters, limit, ...(next === null ? {} : { cursor: next }) },
      signal,
    )
    if (page.items.length > 0 || page.next_cursor === null || request === MAX_REQUESTS) return page
    next = page.next_cursor
  }
}

/** The most entries of an export. */
export const MAX_EXPORTED = 100_000

/** Reads the matching entries, newest first, as lines of JSON. */
export async function readAuditLines(
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

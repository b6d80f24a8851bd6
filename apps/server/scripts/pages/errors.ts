import { table } from './markdown.ts'

type HttpErrors = Readonly<Record<string, { readonly status: number; readonly when: string }>>

/** The error codes of one surface, by HTTP status. */
export function errorTable(errors: HttpErrors): string {
  const rows = Object.entries(errors).map(([code, { status, when }]) => [String(status), `\`${code}\``, when])
  return table(['status', 'code', 'when'], rows)
}

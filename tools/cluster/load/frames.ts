/** A message from a tool, as `/ce` shows it: its body is text that is not JSON. */
export interface Frame {
  readonly data: string
  readonly time: string
  /** Present on commands and queries. */
  readonly brokerrequestid?: string
}

export function bodyOf({ data }: Pick<Frame, 'data'>): string {
  return data
}

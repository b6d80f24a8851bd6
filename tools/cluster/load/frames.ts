/** A message that a tool has sent, as `/ce` shows it: its body is text that is no JSON. */
export interface Frame {
  readonly data: string
  readonly time: string
  /** On commands and queries. */
  readonly brokerrequestid?: string
}

export function bodyOf({ data }: Pick<Frame, 'data'>): string {
  return data
}

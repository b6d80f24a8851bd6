import type { GetData } from '../../api/client.ts'

/** A message of a queue or an events store, as lists show it. */
export type ShownMessage = GetData<'/api/messages'>['items'][number]

import { Store } from './store.ts'

/** The connection to the server: `lost` after a request that got no answer, until one gets an answer. */
export type Connection = 'connected' | 'lost' | 'starting'

export const connection = new Store<Connection>('connected')

import type { StoredEvent } from '@signalbox/broker-core/engine'

export type StoredEventListener = (event: StoredEvent) => void | Promise<void>

import type { GetData } from '../../api/client.ts'

export type RoutingRule = GetData<'/api/routing'>['rules'][number]

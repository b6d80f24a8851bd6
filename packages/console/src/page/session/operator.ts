import type { GetData } from '../api/client.ts'
import { get } from '../api/client.ts'
import { Store, useStore } from '../api/store.ts'
import { useData } from '../api/use-data.ts'

type Operator = GetData<'/api/operator'>

export type Role = Operator['roles'][number]

/** The last known operator, so that the next screen does not wait for it. */
const operator = new Store<Operator | undefined>(undefined)

/** Returns `true` if the operator has the role. The page does not offer what the server would refuse. */
export function useMay(role: Role): boolean {
  const known = useStore(operator)
  useData('operator', async (signal) => {
    const now = await get('/api/operator', {}, signal)
    operator.set(now)
    return now
  })
  return known?.roles.includes(role) ?? false
}

import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Agents() {
  return (
    <Page title="Agents">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

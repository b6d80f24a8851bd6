import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Requests() {
  return (
    <Page title="Requests">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

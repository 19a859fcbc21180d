/** Runs and questions as the API returns them. */
import type { AskedQuestion } from '../contract.ts'
import type { view } from '../run-view.ts'

export type Run = ReturnType<typeof view>

/** `run_id`: the run that asks, the followed one or a sub-agent of it. */
export type Question = AskedQuestion & { run_id?: string }

import { openNotices } from '../../core/events/notices.ts'
import type { Notice } from '../../core/events/notices.ts'
import type { Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type { RunRecord, RunSettings } from './contract.ts'
import { logFieldsOf } from './work.ts'

/** Log lines at once about one kind of failure; then one a minute. */
const AT_ONCE = 10

const noticesOf = new WeakMap<Context<RunSettings>, Notice>()

/**
 * Logs what a thread reports about the models of a run, such as `model.retry`. While a provider is down, every run reports the same
 * failure several times. So the lines of each kind of failure are limited; `untold` of a line counts those that were suppressed.
 */
export function warnOfModel(ctx: Context<RunSettings>, run: RunRecord, { event_type, payload }: NewEvent): void {
	const notice = noticesOf.get(ctx) ?? openNotices(AT_ONCE, ctx)
	noticesOf.set(ctx, notice)
	const { provider, from, model, code } = payload
	// Not the run: its record may be large, and the last line of each kind is kept.
	const fields = { ...logFieldsOf(run), ...payload }
	notice(JSON.stringify([event_type, provider ?? from, model, code]), ({ untold }) =>
		ctx.log.warn({ ...fields, ...(untold && { untold }) }, event_type),
	)
}

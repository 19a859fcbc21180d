import type { IncomingMessage } from 'node:http'
import { openNotices } from '../../core/events/notices.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { peerOf } from '../shared/peer.ts'
import type { Context } from '../../core/plugin.ts'
import type { Credentials } from './contract.ts'

/** Values of `reason` in `security.violation` events about callers. */
export type AuthViolation =
	| 'foreign_page'
	| 'token_invalid'
	| 'token_revoked'
	| 'token_expired'
	| 'scope_missing'
	| 'setup_code_wrong'
	| 'login_refused'

export type ReportViolation = (
	reason: AuthViolation,
	refusal: { message: string },
	request: IncomingMessage,
	/** The caller, if known. Nothing that the caller sent is reported. */
	caller?: Pick<Credentials, 'token_id' | 'actor'>,
) => void

const AT_ONCE = 60

/**
 * Reports refused callers as `security.violation` events: for each reason at most 60 at once, then one a minute. Does not wait
 * until the event is written; an event that cannot be written is logged.
 */
export function violationsOf(ctx: Pick<Context, 'emit' | 'log' | 'every'>, clock?: () => number): ReportViolation {
	const notice = openNotices(AT_ONCE, { every: ctx.every, clock })
	return (reason, { message }, request, caller) => {
		const source_ip = peerOf(request).remoteAddress ?? 'unknown'
		const known = caller && { token_id: caller.token_id, actor: caller.actor }
		const about = { reason, message, source_ip, ...known }
		notice(
			reason,
			(untold) => void emitOrLog(ctx, { event_type: 'security.violation', payload: { ...about, ...untold } }),
			source_ip,
		)
	}
}

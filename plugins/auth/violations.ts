import type { IncomingMessage } from 'node:http'
import { openNotices } from '../../core/events/notices.ts'
import { peerOf } from '../shared/peer.ts'
import type { Context } from '../../core/plugin.ts'
import type { Credentials } from './contract.ts'

/** Values of `reason` in the events `security.violation` about callers. */
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
	/** A known caller. The text of its token, or anything else that it sent, is not reported. */
	caller?: Pick<Credentials, 'token_id' | 'actor'>,
) => void

const PER_MINUTE = 60

/**
 * Reports refused callers as `security.violation`: at most 60 a minute for each reason, whatever clients send. Returns at
 * once; an event that cannot be written is logged.
 */
export function violationsOf({ emit, log }: Pick<Context, 'emit' | 'log'>): ReportViolation {
	const { notice } = openNotices(PER_MINUTE)
	return (reason, { message }, request, caller) =>
		notice(reason, (untold) => {
			const source_ip = peerOf(request).remoteAddress ?? 'unknown'
			const known = caller && { token_id: caller.token_id, actor: caller.actor }
			const payload = { reason, message, source_ip, ...known, ...untold }
			emit({ event_type: 'security.violation', payload }).catch((error: unknown) =>
				log.error({ err: error }, 'the event security.violation was not written'),
			)
		})
}

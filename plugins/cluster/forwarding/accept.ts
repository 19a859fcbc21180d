/** At the working gateway: accepts requests that waiting gateways forward, as if the client had sent them here. */
import type { IncomingMessage } from 'node:http'
import type { Handler } from '../../../core/http/listeners.ts'
import type { Address } from '../../../core/http/listening.ts'
import { setPeer } from '../../shared/peer.ts'
import { answerSocket } from '../../../core/http/raw-answer.ts'
import { refusal, refuseRequest } from './refuse.ts'
import { FORWARDED, openVerifier } from './proof.ts'
import type { Secret } from './proof.ts'
import { valueOf } from './headers.ts'
import type { Borrower } from './threads/borrower.ts'

export interface AcceptOptions {
	/** The id of this gateway's tenure. */
	tenure: string
	/** Null until it is known. */
	secret(): Secret | null
	/** Called for each forwarded request that was accepted. */
	accepted(): void
	/** Accepts connections of gateways that lend threads. */
	borrower: Pick<Borrower, 'upgrade'>
}

/**
 * Refuses a request that has the header without a valid proof: its client's address could not be trusted, nor whether it is local.
 * Plugins never see the header.
 */
export function acceptForwarded({ tenure, secret, accepted, borrower }: AcceptOptions): (handler: Handler) => Handler {
	const verify = openVerifier()
	const why =
		'the request was forwarded by a gateway that cannot prove that it currently belongs to the cluster; repeat the request'

	/** False if the request must be refused. */
	const isAcceptable = (address: Address, request: IncomingMessage): boolean => {
		const { rawHeaders, method = '', url: target = '' } = request
		const header = valueOf(rawHeaders, FORWARDED)
		if (header === undefined) return true
		const key = secret()?.key
		const peer = key && verify(key, tenure, header, { address, method, target })
		if (!peer) return false
		for (let at = rawHeaders.length - 2; at >= 0; at -= 2)
			if (rawHeaders[at]?.toLowerCase() === FORWARDED) rawHeaders.splice(at, 2)
		delete request.headers[FORWARDED]
		setPeer(request, peer)
		accepted()
		return true
	}
	return (handler) => ({
		request(address, request, response) {
			if (isAcceptable(address, request)) handler.request(address, request, response)
			else refuseRequest(response, why)
		},
		upgrade(address, request, socket, head) {
			if (borrower.upgrade(request, socket, head)) return true
			if (isAcceptable(address, request)) return handler.upgrade(address, request, socket, head)
			answerSocket(socket, 503, ...refusal(why))
			return true
		},
	})
}

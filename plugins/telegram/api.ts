/** The Bot API over the guarded client. */
import { autoRetry } from '@grammyjs/auto-retry'
import { Api, GrammyError } from 'grammy'
import type { ApiClientOptions, RawApi } from 'grammy'
import { fetcherFor } from '../../core/fetch/guarded-fetch.ts'
import type { GuardedInit } from '../../core/fetch/guarded-fetch.ts'
import type { Link } from '../channels/adapter.ts'
import { API_ROOT } from './config.ts'
import type { TelegramConfig } from './config.ts'

export const POLL_S = 30
/** For everything, a long poll included: a connection that went silent is found out 15 s behind its time. */
const TIMEOUT_MS = (POLL_S + 15) * 1000
/** Of a hundred updates with all that they quote. */
const MAX_BYTES = 16 * 1024 * 1024
/** Longer pauses are the gateway's business: `limited` holds only the chat that asked too much. */
const SHORT_PAUSE_S = 2

export interface BotApi extends AsyncDisposable {
	call: Api
	/** Does this server know the method? Asked once, by a request without arguments, which can have no effect. */
	knows(method: OptionalMethod): Promise<boolean>
}

/** Methods of later years, which self-hosted and test servers may not have. */
export type OptionalMethod = 'sendRichMessage' | 'sendRichMessageDraft' | 'sendMessageDraft' | 'sendChatAction'

/** Throws `refused` for a token that no bot can have: it becomes a part of the address. */
export function openApi({ token, config, error }: Pick<Link<TelegramConfig>, 'token' | 'config' | 'error'>): BotApi {
	if (!/^[A-Za-z0-9:_-]{1,256}$/.test(token))
		throw error(
			'refused',
			'the secret of bot_token_ref is not a bot token such as 123456:ABC-DEF; @BotFather gives one',
		)
	const root = config.api_root.replace(/\/+$/, '')
	const fetcher = fetcherFor(root, {
		policy: { protocols: ['http:', 'https:'], private_first: root !== API_ROOT },
		max_bytes: MAX_BYTES,
		timeout_ms: TIMEOUT_MS,
		redirects: 0,
	})
	// grammY is written against node-fetch, whose types differ from the standard's, not what it uses of them.
	const fetch = ((url: string, { method, headers, body, signal }: GuardedInit) =>
		fetcher(url, {
			...(method !== undefined && { method }),
			...(headers && { headers }),
			...(body !== undefined && { body }),
			...(signal && { signal }),
		})) as unknown as NonNullable<ApiClientOptions['fetch']>
	const call = new Api(token, { apiRoot: root, fetch })
	// Only where the server says that it did nothing. After a 5xx or a lost connection a message may well have been sent.
	const again = {
		maxRetryAttempts: 1,
		maxDelaySeconds: SHORT_PAUSE_S,
		rethrowInternalServerErrors: true,
		rethrowHttpErrors: true,
	}
	call.config.use(autoRetry(again))

	const known = new Map<OptionalMethod, boolean>()
	return {
		call,
		async knows(method) {
			const before = known.get(method)
			if (before !== undefined) return before
			const does = await answersTo(call.raw, method)
			known.set(method, does)
			return does
		},
		[Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose](),
	}
}

async function answersTo(raw: RawApi, method: OptionalMethod): Promise<boolean> {
	try {
		await (raw[method] as (nothing: object) => Promise<unknown>)({})
		return true
	} catch (error) {
		if (!(error instanceof GrammyError)) throw error
		// 400: it misses its arguments. 404: no such method. What is no answer of the Bot API comes from a server that is
		// none of Telegram's. Everything else says nothing about the method.
		if (error.error_code === 400) return true
		if (error.error_code === 404 || error.error_code === undefined) return false
		throw error
	}
}

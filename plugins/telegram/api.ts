/** The Bot API over the guarded client. */
import { autoRetry } from '@grammyjs/auto-retry'
import { Api, GrammyError } from 'grammy'
import type { ApiClientOptions, RawApi } from 'grammy'
import { fetcherFor, guardedFetch } from '../../core/fetch/guarded-fetch.ts'
import type { GuardedInit } from '../../core/fetch/guarded-fetch.ts'
import type { Link, LoadOptions } from '../channels/adapter.ts'
import { API_ROOT, TOKEN } from './config.ts'
import type { TelegramConfig } from './config.ts'
import { errorOf, isCode } from './errors.ts'

export const POLL_S = 30
/** Limit of each request, long polls included: a silent connection is detected 15 s after its poll should have ended. */
const TIMEOUT_MS = (POLL_S + 15) * 1000
/** Maximum size of a hundred updates with everything that they quote. */
const MAX_BYTES = 16 * 1024 * 1024
/** Longer pauses are left to the gateway: `limited` delays only the chat that exceeded its limit. */
const SHORT_PAUSE_S = 2

export type BotApi = ReturnType<typeof openApi>

/** Newer methods, which self-hosted and test servers may not have. */
export type OptionalMethod =
	| 'sendDocument'
	| 'sendRichMessage'
	| 'sendRichMessageDraft'
	| 'sendMessageDraft'
	| 'sendChatAction'

/** Throws `refused` for a token that no bot can have. */
export function openApi(link: Pick<Link<TelegramConfig>, 'token' | 'config' | 'error'>) {
	const { token, config, error } = link
	if (!TOKEN.test(token))
		throw error(
			'refused',
			'the secret of bot_token_ref is not a bot token such as 123456:ABC-DEF; @BotFather gives one',
		)
	const root = config.api_root.replace(/\/+$/, '')
	const policy = { protocols: ['http:', 'https:'], private_first: root !== API_ROOT } as const
	const fetcher = fetcherFor(root, { policy, max_bytes: MAX_BYTES, timeout_ms: TIMEOUT_MS, redirects: 0 })
	// grammY has the types of node-fetch, which differ from the standard's; the parts that it uses are the same.
	const fetch = async (url: string, { method, headers, body, signal }: GuardedInit): Promise<Response> =>
		fetcher(url, { method, headers, body: body && (await wholeOf(body)), signal })
	const call = new Api(token, { apiRoot: root, fetch: fetch as unknown as NonNullable<ApiClientOptions['fetch']> })
	// Retries only if nothing was sent. After a 5xx or a lost connection the message may have been sent.
	const retryOptions = {
		maxRetryAttempts: 1,
		maxDelaySeconds: SHORT_PAUSE_S,
		rethrowInternalServerErrors: true,
		rethrowHttpErrors: true,
	}
	call.config.use(autoRetry(retryOptions))

	const supported = new Map<OptionalMethod, boolean>()
	return {
		call,
		/**
		 * Whether the server supports a method. Checked once, by a request without arguments, which has no effect. If the check itself
		 * fails, the error says that nothing was sent.
		 */
		async supports(method: OptionalMethod): Promise<boolean> {
			const known = supported.get(method)
			if (known !== undefined) return known
			const isSupported = await hasMethod(call.raw, method).catch((failed: unknown) => {
				const failure = errorOf(failed, link)
				throw isCode(failed, 401) || 'code' in failure ? failed : error('failed', failure.message)
			})
			supported.set(method, isSupported)
			return isSupported
		},
		/** Downloads a file, of at most 20 MB on Telegram's own server. Errors do not contain its address, which has the token. */
		async download(file_id: string, { signal, max_bytes }: LoadOptions): Promise<Uint8Array> {
			const { file_path } = await call.getFile(file_id, signal as Parameters<typeof call.getFile>[1])
			// A self-hosted server may return a path on its disk instead.
			if (!file_path || /^[/\\]|\.\.|:/.test(file_path)) throw new Error('the Bot API server offers no download')
			const options = { policy, max_bytes, timeout_ms: TIMEOUT_MS, redirects: 0 }
			const address = `${root}/file/bot${token}/${file_path.split('/').map(encodeURIComponent).join('/')}`
			const response = await guardedFetch(address, { signal }, options)
			if (!response.ok) {
				await response.body?.cancel()
				throw new Error(`the Bot API server answered with status ${response.status}`)
			}
			return new Uint8Array(await response.arrayBuffer())
		},
		[Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose](),
	}
}

/** grammY sends files as a stream, but the fetcher needs bytes. */
async function wholeOf(body: unknown): Promise<NonNullable<GuardedInit['body']>> {
	if (typeof body === 'string') return body
	return Buffer.concat(await Array.fromAsync(body as AsyncIterable<Uint8Array>))
}

async function hasMethod(raw: RawApi, method: OptionalMethod): Promise<boolean> {
	try {
		await (raw[method] as (nothing: object) => Promise<unknown>)({})
		return true
	} catch (error) {
		if (!(error instanceof GrammyError)) throw error
		// 400: arguments are missing. 404: no such method. A response without a code is not from Telegram's own server. Any other
		// response says nothing about the method.
		if (error.error_code === 400) return true
		if (error.error_code === 404 || error.error_code === undefined) return false
		throw error
	}
}

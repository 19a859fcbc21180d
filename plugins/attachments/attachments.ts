/** The service: loads attachments from their sources, and stores them as blobs. */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'
import { releaseBlobs, useBlobs, usedBlobs } from './blob-uses.ts'
import type { Attachments, AttachmentSettings, AttachmentSource, Blob } from './contract.ts'
import { decodeData } from './data.ts'
import { fetchFile } from './fetch-file.ts'
import { partTypeOf } from './media-type.ts'
import { findBlob, readBlob } from './read-blob.ts'
import { writeBlob } from './write-blob.ts'

const MIB = 1024 * 1024
const NAME_LIMIT = 255
/** Concurrent uploads over HTTP. Up to 2 MiB of each are in memory. */
const UPLOADS_LIMIT = 128

export function attachmentsOf(ctx: Context<AttachmentSettings>): Attachments {
	const { store, config } = ctx
	const limits = { max_bytes: config.max_mib * MIB, max_bytes_per_agent: config.max_mib_per_agent * MIB }

	const stored = async (agent: AgentRef, source: AttachmentSource): Promise<Attachment> => {
		if ('blob' in source) {
			const found = await findBlob(store, agent.uid, source.blob)
			if (!found)
				throw new Fault('invalid_request', 'the agent has no such blob; POST /v1/agents/{name}/blobs uploads one')
			return attachmentOf(found, source)
		}
		const { bytes, ...about } = await bytesOf(ctx, agent, source, limits.max_bytes)
		return attachmentOf(await writeBlob(store, agent.uid, [bytes], about, limits), about)
	}

	return {
		limits: config,
		blobs: {
			read: (...given) => readBlob(store, ...given),
			use: (...given) => useBlobs(store, ...given),
			usedBy: (...given) => usedBlobs(store, ...given),
			release: (...given) => releaseBlobs(store, ...given),
		},
		uploads: ctx.use('auth').openRequests({ limit: UPLOADS_LIMIT, what: 'uploads are in progress' }),
		async take(agent, sources) {
			if (sources.length > config.max_per_message)
				throw new Fault(
					'invalid_request',
					`a message may have at most ${config.max_per_message} attachments (attachments.max_per_message); this one has ${sources.length}`,
				)
			const taken: Attachment[] = []
			let bytes = 0
			// One after another, so that only one attachment of a message is in memory.
			for (const [at, source] of sources.entries()) {
				const attachment = await stored(agent, source).catch((error: unknown) => {
					throw at === 0 && sources.length === 1 ? error : numbered(error, at + 1)
				})
				bytes += attachment.size
				if (bytes > config.max_mib_per_message * MIB)
					throw new Fault(
						'payload_too_large',
						`the attachments of a message may have at most ${config.max_mib_per_message} MiB together (attachments.max_mib_per_message)`,
					)
				taken.push(attachment)
			}
			return taken
		},
		upload: async (agent, bytes, about) => attachmentOf(await writeBlob(store, agent.uid, bytes, about, limits), about),
	}
}

interface LoadedBytes extends Pick<AttachmentSource, 'name' | 'media_type' | 'seconds'> {
	bytes: Uint8Array
}

async function bytesOf(
	ctx: Context<AttachmentSettings>,
	agent: AgentRef,
	{ name, media_type, seconds, ...source }: Exclude<AttachmentSource, { blob: string }>,
	max_bytes: number,
): Promise<LoadedBytes> {
	const { config, emit } = ctx
	const about = { name, media_type, seconds }
	if ('bytes' in source) return { ...about, bytes: source.bytes }
	if ('data' in source) {
		const data = decodeData(source.data, max_bytes)
		return { ...about, media_type: media_type ?? data.media_type, bytes: data.bytes }
	}
	if (/^data:/i.test(source.url)) return bytesOf(ctx, agent, { ...about, data: source.url }, max_bytes)
	try {
		const file = await fetchFile(source.url, { max_bytes, private_hosts: config.allowed_hosts, owner: agent.uid })
		return { seconds, name: name ?? file.name, media_type: media_type ?? file.media_type, bytes: file.bytes }
	} catch (error) {
		if (isFault(error, 'address_refused')) {
			const what = URL.parse(source.url)?.host ?? ''
			const payload = { reason: 'address_refused', what, message: error.message }
			await emit({ event_type: 'security.violation', payload }, agent.name)
		}
		throw error
	}
}

function attachmentOf({ blob, media_type, size }: Blob, { name, seconds }: Partial<AttachmentSource>): Attachment {
	const shown = nameOf(name ?? '')
	return {
		type: partTypeOf(media_type),
		blob,
		media_type,
		size,
		...(shown !== '' && { name: shown }),
		...(seconds !== undefined && seconds > 0 && { seconds: Math.round(seconds) }),
	}
}

/** The last part of a path, without characters that have a meaning for terminals or file systems. */
function nameOf(name: string): string {
	const last = name.split(/[/\\]/).at(-1) ?? ''
	return last
		.replace(/[\p{Cc}\p{Cf}<>:"|?*]/gu, '')
		.slice(0, NAME_LIMIT)
		.toWellFormed()
		.trim()
}

function numbered(error: unknown, number: number): unknown {
	if (!isFault(error)) return error
	const { code, message, errors, headers } = error
	return new Fault(code, `attachment ${number}: ${message}`, { ...(errors && { errors }), headers, cause: error })
}

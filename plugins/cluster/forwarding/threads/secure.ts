/**
 * Encrypts a link and authenticates both of its ends: TLS with a key that they share, and with ephemeral keys, so that what was
 * recorded stays secret if the installation's key gets out later. TLS 1.2, since Node has no such keys for TLS 1.3.
 */
import { hkdfSync } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import tls from 'node:tls'
import { within } from '../../../../core/util/deadline.ts'

const HANDSHAKE_MS = 5_000
const IDENTITY = 'svc-threads'
const version = {
	ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
	minVersion: 'TLSv1.2',
	maxVersion: 'TLSv1.2',
} as const

/** `key`: what the gateways of the installation sign with. The shared key is another one for each tenure. */
export interface SharedKey {
	key: KeyObject
	tenure: string
}

/** At the end that connected. Throws if the other one does not have the key. */
export function secureAsLender(socket: Duplex, head: Buffer, shared: SharedKey): Promise<Duplex> {
	socket.unshift(head)
	const psk = derive(shared)
	const secured = tls.connect({
		...version,
		socket,
		pskCallback: () => ({ psk, identity: IDENTITY }),
		// There is no certificate: whoever has the key is the other end.
		checkServerIdentity: () => undefined,
	})
	return established(secured, 'secureConnect', socket)
}

/** At the end that was connected to. Throws if the other one does not have the key. */
export function secureAsBorrower(socket: Duplex, head: Buffer, shared: SharedKey): Promise<Duplex> {
	socket.unshift(head)
	const psk = derive(shared)
	// Its types lack `pskCallback`, which it takes as a server does (Node: _tls_wrap.js).
	const options: tls.TLSSocketOptions & Pick<tls.TlsOptions, 'pskCallback'> = {
		...version,
		isServer: true,
		// `null` refuses it.
		pskCallback: (_socket, identity) => (identity === IDENTITY ? psk : null),
	}
	const secured = new tls.TLSSocket(socket as tls.TLSSocket, options)
	return established(secured, 'secure', socket)
}

async function established(secured: tls.TLSSocket, event: 'secure' | 'secureConnect', socket: Duplex): Promise<Duplex> {
	secured.once('close', () => socket.destroy())
	socket.on('error', () => secured.destroy())
	try {
		await within(HANDSHAKE_MS, 'the other gateway', once(secured, event))
		return secured
	} catch (error) {
		secured.on('error', () => {})
		secured.destroy()
		throw error
	}
}

function derive({ key, tenure }: SharedKey): Buffer {
	return Buffer.from(hkdfSync('sha256', key, tenure, 'svc threads', 32))
}

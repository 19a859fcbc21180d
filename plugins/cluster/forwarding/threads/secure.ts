/**
 * Encrypts a link and authenticates both ends: TLS with a pre-shared key and ephemeral keys, so that recorded traffic stays secret if
 * the installation's key leaks later (forward secrecy). TLS 1.2, since Node does not support pre-shared keys in TLS 1.3.
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

/** `key`: the signing key of the installation's gateways. Each tenure has a different pre-shared key, derived from it. */
export interface SharedKey {
	key: KeyObject
	tenure: string
}

/** The connecting side. Throws if the other one does not have the key. */
export function secureAsLender(socket: Duplex, head: Buffer, shared: SharedKey): Promise<Duplex> {
	socket.unshift(head)
	const psk = derive(shared)
	const secured = tls.connect({
		...version,
		socket,
		pskCallback: () => ({ psk, identity: IDENTITY }),
		// There is no certificate: the key authenticates the other end.
		checkServerIdentity: () => undefined,
	})
	return established(secured, 'secureConnect', socket)
}

/** The accepting side. Throws if the other one does not have the key. */
export function secureAsBorrower(socket: Duplex, head: Buffer, shared: SharedKey): Promise<Duplex> {
	socket.unshift(head)
	const psk = derive(shared)
	// The types lack `pskCallback`, which the constructor accepts as a server does (Node: _tls_wrap.js).
	const options: tls.TLSSocketOptions & Pick<tls.TlsOptions, 'pskCallback'> = {
		...version,
		isServer: true,
		// `null` refuses the connection.
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

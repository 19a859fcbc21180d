/**
 * The two ends of the connection on which a client sent its request. Where another gateway of the cluster forwarded it, they
 * are those at that gateway (plugins/cluster/forwarding/accept.ts), so everything that depends on the client's address asks here, and never
 * the socket.
 */
export interface Peer {
	remoteAddress?: string | undefined
	localAddress?: string | undefined
}

const forwarded = new WeakMap<object, Peer>()

export function peerOf(request: { socket: Peer }): Peer {
	return forwarded.get(request) ?? request.socket
}

/** For whoever has proof of where the request comes from. */
export function setPeer(request: object, peer: Peer): void {
	forwarded.set(request, peer)
}
